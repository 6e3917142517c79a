/* Pictures that can be explored: zoom and move by mouse, keyboard or fingers, search by name, choose a block and keep it
 * chosen. Without this the picture is whole and still, and a block tells of itself when it is pointed at.
 *
 * A picture is an SVG in an element of class "explore". Its blocks lie in a group of their own; data-frame is the rectangle
 * that they fill, data-right and data-up say how far the axes go and in what (nodes, bytes, seconds); whatever else moves
 * with the blocks says in data-x and data-y where it belongs on the axes. */
'use strict';
(() => {
const LEAST = 1e-4; /* of an axis that is still shown */
const HITS = 8;     /* that are listed */

const make = (parent, tag, attributes, text) => {
  const e = parent.appendChild(document.createElement(tag));
  for (const name in attributes) e.setAttribute(name, attributes[name]);
  if (text !== undefined) e.textContent = text;
  return e;
};
const drawn = (parent, tag, attributes) => {
  const e = document.createElementNS(parent.namespaceURI, tag);
  for (const name in attributes) e.setAttribute(name, attributes[name]);
  return parent.appendChild(e);
};
const count = n => Math.round(n).toLocaleString('en-US');

/* A number of an axis in words, with as many decimals as tell it from one that is `step` away. */
const UNITS = {
  B: [[1e12, 'TB'], [1e9, 'GB'], [1e6, 'MB'], [1e3, 'kB'], [1, 'B']],
  s: [[1, 's'], [1e-3, 'ms'], [1e-6, 'us'], [1e-9, 'ns']],
};
function words(value, step, unit) {
  if (unit === 'node') return count(value);
  const [size, name] = UNITS[unit].find(u => Math.abs(value) >= u[0] * 0.9995) || UNITS[unit][UNITS[unit].length - 1];
  const decimals = Math.max(0, Math.ceil(-Math.log10(step / size * 1.0001)));
  return value === 0 ? (unit === 'B' ? '0 B' : '0') : (value / size).toFixed(Math.min(decimals, 9)) + ' ' + name;
}
/* The next of 1, 2, 5 times a power of ten that cuts the range into at most so many pieces. */
function tick(range, pieces) {
  const least = range / pieces, power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map(f => f * power).find(step => step >= least * 0.9999);
}

function explore(figure) {
  const svg = figure.querySelector('svg'), group = svg.querySelector('.blocks');
  const [left, top, width, height] = svg.dataset.frame.split(' ').map(Number);
  const axis = (text, pieces) => text && {most: +text.split(' ')[0], unit: text.split(' ')[1], pieces};
  const right = axis(svg.dataset.right, 8), up = axis(svg.dataset.up, 6); /* no `up`: lanes that stay where they are */
  /* A block is found by what it is called, what it is a part of, and by the legend's word for its colour. */
  const legend = new Map([...figure.parentNode.querySelectorAll('.legend span')].map(s => [s.firstChild.className, s.textContent]));
  const blocks = [...group.querySelectorAll('rect')].map(rect => {
    const text = rect.querySelector('title').textContent;
    const [x, y, w, h] = ['x', 'y', 'width', 'height'].map(name => +rect.getAttribute(name));
    const searched = text.split('\n').slice(0, 2).join(' ') + ' ' + (legend.get(rect.classList[0]) || '');
    return {rect, text, low: searched.toLowerCase(), x, y, w, h};
  }).sort((a, b) => a.x - b.x || a.y - b.y);

  /* What is shown of the whole picture, in its units, and where a point of it is now; where a number of an axis lies in the
   * whole picture, and the other way round. */
  let from = left, to = left + width, above = top, below = top + height;
  const X = x => left + (x - from) / (to - from) * width, Y = y => top + (y - above) / (below - above) * height;
  const along = v => left + v / right.most * width, alongAt = x => (x - left) / width * right.most;
  const upward = v => top + height - v / up.most * height, upwardAt = y => (top + height - y) / height * up.most;
  const isWhole = () => to - from > width * 0.9999 && below - above > height * 0.9999;
  let chosen = null, found = [], waiting = false;

  /* What is cut off at the frame, and what marks the chosen block. */
  const name = 'frame-' + Math.random().toString(36).slice(2);
  drawn(drawn(svg, 'clipPath', {id: name}), 'rect', {x: left, y: top - 1, width, height: height + 2});
  const clip = drawn(svg, 'g', {'clip-path': `url(#${name})`});
  svg.insertBefore(clip, group);
  const free = svg.querySelector('.free');
  clip.append(...(free ? [free] : []), group);
  group.setAttribute('aria-hidden', 'true'); /* thousands of titles: the search and N and P read them out */
  const freeTop = free && +free.getAttribute('y');
  const ring = drawn(clip, 'rect', {class: 'ring', visibility: 'hidden'});

  /* What moves with the blocks: where it belongs, and how far from there it stands. */
  const moving = [...svg.querySelectorAll(':scope > [data-x], :scope > [data-y]')].map(e => {
    const xs = (e.dataset.x || '').split(' ').filter(s => s).map(v => along(+v)), ys = e.dataset.y === undefined ? [] : [upward(+e.dataset.y)];
    const off = (attribute, is) => e.getAttribute(attribute) - is;
    return e.tagName === 'line' ? {e, xs, ys, line: true} :
      {e, xs, ys, dx: xs.length ? off('x', X(xs[0])) : 0, dy: ys.length ? off('y', Y(ys[0])) : 0};
  });
  function move(m) {
    const x = m.xs.map(X), y = m.ys.map(Y), inside = (v, a, b) => v >= a - 0.01 && v <= b + 0.01;
    const shown = x.length === 2 ? x[0] < left + width && x[1] > left
      : x.every(v => inside(v, left, left + width)) && y.every(v => inside(v, top, top + height));
    m.e.setAttribute('visibility', shown ? 'visible' : 'hidden');
    if (!shown) return;
    if (m.line) {
      if (x.length) m.e.setAttribute('x1', Math.max(x[0], left)), m.e.setAttribute('x2', Math.min(x[x.length - 1], left + width));
      if (y.length) m.e.setAttribute('y1', y[0]), m.e.setAttribute('y2', y[0]);
      if (x.length && !y.length && m.e.classList.contains('mark')) m.e.setAttribute('y1', top);
    } else {
      if (x.length) m.e.setAttribute('x', x[0] + m.dx);
      if (y.length) m.e.setAttribute('y', y[0] + m.dy);
    }
  }

  /* Ticks are made anew from the first of their kind. */
  const ticks = [...svg.querySelectorAll('.ticks')].map(g => ({g, models: [...new Map([...g.children].reverse().map(e => [e.tagName, e.cloneNode(true)])).values()]}));
  function drawTicks() {
    for (const t of ticks) {
      t.g.replaceChildren();
      for (const model of t.models) {
        const isUp = model.dataset.y !== undefined, a = isUp ? up : right;
        const [first, last] = isUp ? [upwardAt(below), upwardAt(above)] : [alongAt(from), alongAt(to)], step = tick(last - first, a.pieces);
        for (let i = Math.ceil(first / step - 1e-9); i * step <= last * (1 + 1e-12); i++) {
          const e = t.g.appendChild(model.cloneNode(true)), at = isUp ? Y(upward(i * step)) : X(along(i * step));
          if (e.tagName === 'text') e.textContent = words(i * step, step, a.unit);
          for (const attribute of isUp ? ['y', 'y1', 'y2'] : ['x', 'x1', 'x2'])
            if (e.hasAttribute(attribute)) e.setAttribute(attribute, at + (isUp && attribute === 'y' ? 4.5 : 0));
        }
      }
    }
  }

  function draw() {
    waiting = false;
    group.setAttribute('transform', `matrix(${width / (to - from)} 0 0 ${height / (below - above)} ${X(0)} ${Y(0)})`);
    if (free) {
      const y = Math.max(top, Y(freeTop));
      free.setAttribute('y', y);
      free.setAttribute('height', Math.max(0, top + height - y));
    }
    moving.forEach(move);
    drawTicks();
    if (chosen) {
      const x = X(chosen.x), y = Y(chosen.y), w = X(chosen.x + chosen.w) - x, h = Y(chosen.y + chosen.h) - y;
      for (const [attribute, value] of [['x', x - 1.5], ['y', y - 1.5], ['width', w + 3], ['height', h + 3]]) ring.setAttribute(attribute, value);
    }
    ring.setAttribute('visibility', chosen ? 'visible' : 'hidden');
    svg.classList.toggle('zoomed', !isWhole());
    reset.disabled = isWhole();
    const stretch = (a, b, unit) => `${words(a, (b - a) / 100, unit)} to ${words(unit === 'node' ? Math.max(a, b - 1) : b, (b - a) / 100, unit)}`;
    where.textContent = `Shown: ${right.unit === 'node' ? 'nodes ' : ''}${stretch(alongAt(from), alongAt(to), right.unit)}`
      + (up ? `, ${stretch(upwardAt(below), upwardAt(above), up.unit)}.` : '.');
  }
  function redraw() {
    if (!waiting) waiting = true, requestAnimationFrame(draw);
  }

  /* A stretch of the picture from `least`, `most` long, moved to where the picture is. */
  function fit(first, last, least, most) {
    const span = Math.min(most, Math.max(last - first, most * LEAST)), middle = (first + last) / 2;
    const start = Math.min(Math.max(least, middle - span / 2), least + most - span);
    return [start, start + span];
  }
  function show(x0, x1, y0, y1) {
    [from, to] = fit(x0, x1, left, width);
    if (up) [above, below] = fit(y0, y1, top, height);
    redraw();
  }
  /* What is at a point stays there. */
  function zoom(fx, fy, at) {
    const a = Math.max(fx, (to - from) / width), b = Math.max(fy, (below - above) / height);
    const x = from + (at.x - left) / width * (to - from), y = above + (at.y - top) / height * (below - above);
    show(x - (x - from) / a, x + (to - x) / a, y - (y - above) / b, y + (below - y) / b);
  }
  function shift(dx, dy) {
    const x = dx * (to - from) / width, y = dy * (below - above) / height;
    show(from - x, to - x, above - y, below - y);
  }
  const middle = {x: left + width / 2, y: top + height / 2};
  const all = () => show(left, left + width, top, top + height);
  const around = b => show(b.x - b.w, b.x + 2 * b.w, b.y - b.h, b.y + 2 * b.h);
  function into(b) { /* as far as it takes to see it */
    const x = X(b.x + b.w / 2), y = Y(b.y + b.h / 2), isSeen = (v, a, size) => v >= a && v <= a + size;
    shift(isSeen(x, left, width) ? 0 : middle.x - x, isSeen(y, top, height) ? 0 : middle.y - y);
  }

  /* ---- what stands around the picture ---- */
  const label = svg.getAttribute('aria-label');
  const tools = document.createElement('div');
  tools.className = 'tools';
  figure.insertBefore(tools, svg);
  const search = make(tools, 'input', {type: 'search', placeholder: 'search by name', 'aria-label': `search the blocks of the ${label}`, autocomplete: 'off', spellcheck: 'false'});
  const button = (parent, text, act, says) => {
    const b = make(parent, 'button', says ? {type: 'button', 'aria-label': says, title: says} : {type: 'button'}, text);
    b.addEventListener('click', act);
    return b;
  };
  button(tools, '+', () => zoom(1.6, 1.6, middle), 'zoom in');
  button(tools, '\u2212', () => zoom(1 / 1.6, 1 / 1.6, middle), 'zoom out');
  const reset = button(tools, 'whole picture', () => { all(); svg.focus({preventScroll: true}); });
  const said = make(tools, 'span', {role: 'status'});
  const hits = make(figure, 'ol', {class: 'hits', hidden: ''});
  figure.insertBefore(hits, svg);
  const card = make(figure, 'div', {class: 'chosen', hidden: ''}), facts = make(card, 'div', {role: 'status'}), row = make(card, 'div', {class: 'acts'});
  const where = make(figure, 'p', {class: 'where', 'aria-live': 'polite'});
  const keys = make(figure, 'p', {class: 'where', id: name + '-keys'},
    'Drag to move; zoom with Ctrl and the wheel (with Shift, along the schedule only) or two fingers; click a block to select it. ' +
    'Keyboard: arrows, + and \u2212, 0 for the whole picture, N and P for the next and previous block, Enter to zoom to it, / to search, Escape.');
  svg.setAttribute('tabindex', '0');
  svg.setAttribute('role', 'application');
  svg.setAttribute('aria-describedby', keys.id);

  function choose(b) {
    chosen = b;
    facts.replaceChildren();
    card.hidden = !b;
    const [first, ...lines] = b ? b.text.split('\n') : [''];
    make(facts, 'b', {}, first);
    for (const line of lines) make(facts, 'span', {}, line);
    redraw();
  }
  button(row, 'zoom to it', () => around(chosen));
  button(row, 'previous', () => step(-1), 'previous block');
  button(row, 'next', () => step(1), 'next block');
  button(row, 'deselect', () => { choose(null); svg.focus({preventScroll: true}); });
  function step(by) {
    const among = found.length ? found : blocks, at = chosen ? among.indexOf(chosen) : -1;
    const next = among[chosen && at >= 0 ? (at + by + among.length) % among.length : by > 0 ? 0 : among.length - 1];
    choose(next);
    into(next);
  }
  function look() {
    const wanted = search.value.toLowerCase().split(/\s+/).filter(w => w);
    found = wanted.length ? blocks.filter(b => wanted.every(w => b.low.includes(w))) : [];
    svg.classList.toggle('searched', wanted.length > 0);
    for (const rect of group.querySelectorAll('.found')) rect.classList.remove('found');
    for (const b of found) b.rect.classList.add('found');
    said.textContent = wanted.length ? `${count(found.length)} of ${count(blocks.length)} blocks` : '';
    hits.replaceChildren();
    hits.hidden = !found.length;
    for (const b of [...found].sort((a, c) => c.w * c.h - a.w * a.h).slice(0, HITS))
      button(make(hits, 'li', {}), b.text.split('\n')[0], () => { choose(b); around(b); });
    if (found.length > HITS) make(hits, 'li', {}, `and ${count(found.length - HITS)} more: Enter goes through them`);
  }
  search.addEventListener('input', look);
  search.addEventListener('keydown', event => {
    if (event.key === 'Enter' && found.length) step(event.shiftKey ? -1 : 1);
    if (event.key === 'Escape') search.value = '', look();
  });

  /* ---- keyboard ---- */
  const KEYS = {
    ArrowLeft: () => shift(width / 8, 0), ArrowRight: () => shift(-width / 8, 0), ArrowUp: () => shift(0, height / 8), ArrowDown: () => shift(0, -height / 8),
    '+': () => zoom(1.6, 1.6, middle), '=': () => zoom(1.6, 1.6, middle), '-': () => zoom(1 / 1.6, 1 / 1.6, middle), 0: all,
    n: () => step(1), p: () => step(-1), Enter: () => chosen && around(chosen), Escape: () => chosen ? choose(null) : all(),
    '/': () => search.focus(),
  };
  svg.addEventListener('keydown', event => {
    const act = KEYS[event.key] || KEYS[event.key.toLowerCase()];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act();
  });

  /* ---- mouse and fingers ---- */
  const point = event => new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
  svg.addEventListener('wheel', event => {
    if (!event.ctrlKey && !event.metaKey) return; /* the page scrolls */
    event.preventDefault();
    const f = Math.exp(-(event.deltaY || event.deltaX) * (event.deltaMode ? 0.05 : 0.002));
    zoom(f, event.shiftKey ? 1 : f, point(event));
  }, {passive: false});
  const held = new Map(); /* pointers that are down */
  let moved = 0;
  const span = () => {
    const [a, b] = [...held.values()];
    return {x: (a.x + b.x) / 2, y: (a.y + b.y) / 2, d: Math.hypot(a.x - b.x, a.y - b.y)};
  };
  svg.addEventListener('pointerdown', event => {
    if (event.button) return;
    if (!held.size) moved = 0;
    held.set(event.pointerId, point(event));
    svg.setPointerCapture(event.pointerId); /* it may be let go anywhere */
  });
  svg.addEventListener('pointermove', event => {
    const was = held.get(event.pointerId), is = point(event);
    if (!was) return;
    const before = held.size === 2 && span();
    moved += Math.hypot(is.x - was.x, is.y - was.y);
    held.set(event.pointerId, is);
    if (before) {
      const after = span();
      zoom(after.d / before.d, after.d / before.d, before);
      shift(after.x - before.x, after.y - before.y);
    } else if (held.size === 1 && moved > 6) {
      shift(is.x - was.x, is.y - was.y);
    }
  });
  for (const end of ['pointerup', 'pointercancel']) svg.addEventListener(end, event => held.delete(event.pointerId));
  svg.addEventListener('click', event => {
    if (moved > 6) return;
    const at = point(event), reach = (event.pointerType === 'touch' ? 22 : 4) / svg.getScreenCTM().a; /* pixels, in the picture's units */
    let best = null, least = reach;
    for (const b of blocks) { /* the nearest: some are thinner than a pixel */
      const x0 = X(b.x), x1 = X(b.x + b.w), y0 = Y(b.y), y1 = Y(b.y + b.h);
      const d = Math.hypot(Math.max(x0 - at.x, 0, at.x - x1), Math.max(y0 - at.y, 0, at.y - y1));
      if (d < least) best = b, least = d;
    }
    choose(best);
  });
  svg.addEventListener('dblclick', event => zoom(2.5, 2.5, point(event)));
  draw();
}

document.querySelectorAll('.explore').forEach(explore);
})();
