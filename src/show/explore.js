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

const button = (parent, text, act, says) => {
  const b = make(parent, 'button', says ? {type: 'button', 'aria-label': says, title: says} : {type: 'button'}, text);
  b.addEventListener('click', act);
  return b;
};

/* A block is found by what it is called, what it is a part of, and by the legend's word for its colour. */
function readBlocks(figure) {
  const legend = new Map([...figure.parentNode.querySelectorAll('.legend span')].map(s => [s.firstChild.className, s.textContent]));
  return [...figure.querySelectorAll('.blocks rect')].map(rect => {
    const text = rect.querySelector('title').textContent;
    const [x, y, w, h] = ['x', 'y', 'width', 'height'].map(name => +rect.getAttribute(name));
    const searched = text.split('\n').slice(0, 2).join(' ') + ' ' + (legend.get(rect.classList[0]) || '');
    return {rect, text, low: searched.toLowerCase(), x, y, w, h};
  }).sort((a, b) => a.x - b.x || a.y - b.y);
}

/* What is shown of the whole picture: from, to, above, below are in its units. Calls `changed` when that is another part. */
class View {
  constructor(svg, changed) {
    const axis = (text, pieces) => text && {most: +text.split(' ')[0], unit: text.split(' ')[1], pieces};
    [this.left, this.top, this.width, this.height] = svg.dataset.frame.split(' ').map(Number);
    this.right = axis(svg.dataset.right, 8);
    this.up = axis(svg.dataset.up, 6); /* none: lanes that stay where they are */
    this.middle = {x: this.left + this.width / 2, y: this.top + this.height / 2};
    this.changed = changed;
    [this.from, this.to, this.above, this.below] = [this.left, this.left + this.width, this.top, this.top + this.height];
  }
  /* Where a point of the whole picture is now. */
  X(x) { return this.left + (x - this.from) / (this.to - this.from) * this.width; }
  Y(y) { return this.top + (y - this.above) / (this.below - this.above) * this.height; }
  /* Where a number of an axis lies in the whole picture, and the other way round. */
  along(v) { return this.left + v / this.right.most * this.width; }
  alongAt(x) { return (x - this.left) / this.width * this.right.most; }
  upward(v) { return this.top + this.height - v / this.up.most * this.height; }
  upwardAt(y) { return (this.top + this.height - y) / this.height * this.up.most; }
  /* The numbers between which an axis is shown. */
  stretch(isUp) { return isUp ? [this.upwardAt(this.below), this.upwardAt(this.above)] : [this.alongAt(this.from), this.alongAt(this.to)]; }
  isWhole() { return this.to - this.from > this.width * 0.9999 && this.below - this.above > this.height * 0.9999; }

  show(x0, x1, y0, y1) {
    const fit = (first, last, least, most) => { /* a stretch from `least`, `most` long */
      const span = Math.min(most, Math.max(last - first, most * LEAST)), middle = (first + last) / 2;
      const start = Math.min(Math.max(least, middle - span / 2), least + most - span);
      return [start, start + span];
    };
    [this.from, this.to] = fit(x0, x1, this.left, this.width);
    if (this.up) [this.above, this.below] = fit(y0, y1, this.top, this.height);
    this.changed();
  }
  /* What is at a point stays there. */
  zoom(fx, fy, at = this.middle) {
    const {from, to, above, below, left, top, width, height} = this;
    const a = Math.max(fx, (to - from) / width), b = Math.max(fy, (below - above) / height);
    const x = from + (at.x - left) / width * (to - from), y = above + (at.y - top) / height * (below - above);
    this.show(x - (x - from) / a, x + (to - x) / a, y - (y - above) / b, y + (below - y) / b);
  }
  shift(dx, dy) {
    const x = dx * (this.to - this.from) / this.width, y = dy * (this.below - this.above) / this.height;
    this.show(this.from - x, this.to - x, this.above - y, this.below - y);
  }
  all() { this.show(this.left, this.left + this.width, this.top, this.top + this.height); }
  around(b) { this.show(b.x - b.w, b.x + 2 * b.w, b.y - b.h, b.y + 2 * b.h); }
  into(b) { /* as far as it takes to see it */
    const x = this.X(b.x + b.w / 2), y = this.Y(b.y + b.h / 2), isSeen = (v, a, size) => v >= a && v <= a + size;
    this.shift(isSeen(x, this.left, this.width) ? 0 : this.middle.x - x, isSeen(y, this.top, this.height) ? 0 : this.middle.y - y);
  }
}

/* Lines and words that move with the blocks: where they belong, and how far from there they stand. */
function readMoving(svg, view) {
  return [...svg.querySelectorAll(':scope > [data-x], :scope > [data-y]')].map(e => {
    const xs = (e.dataset.x || '').split(' ').filter(s => s).map(v => view.along(+v)), ys = e.dataset.y === undefined ? [] : [view.upward(+e.dataset.y)];
    const off = (attribute, is) => e.getAttribute(attribute) - is;
    return e.tagName === 'line' ? {e, xs, ys, line: true} : {e, xs, ys, dx: xs.length ? off('x', xs[0]) : 0, dy: ys.length ? off('y', ys[0]) : 0};
  });
}

function move(m, view) {
  const {left, top, width, height} = view, x = m.xs.map(v => view.X(v)), y = m.ys.map(v => view.Y(v));
  const inside = (v, a, b) => v >= a - 0.01 && v <= b + 0.01;
  const shown = x.length === 2 ? x[0] < left + width && x[1] > left
    : x.every(v => inside(v, left, left + width)) && y.every(v => inside(v, top, top + height));
  m.e.setAttribute('visibility', shown ? 'visible' : 'hidden');
  if (!shown) return;
  if (m.line) {
    if (x.length) m.e.setAttribute('x1', Math.max(x[0], left)), m.e.setAttribute('x2', Math.min(x[x.length - 1], left + width));
    if (y.length) m.e.setAttribute('y1', y[0]), m.e.setAttribute('y2', y[0]);
    if (x.length && !y.length && m.e.classList.contains('mark') && !view.isWhole()) m.e.setAttribute('y1', top);
  } else {
    if (x.length) m.e.setAttribute('x', x[0] + m.dx);
    if (y.length) m.e.setAttribute('y', y[0] + m.dy);
  }
}

/* Ticks are made anew from the first of their kind. */
function readTicks(svg) {
  const first = g => [...new Map([...g.children].reverse().map(e => [e.tagName, e.cloneNode(true)])).values()];
  return [...svg.querySelectorAll('.ticks')].map(g => ({g, models: first(g)}));
}

function drawTicks(t, view) {
  t.g.replaceChildren();
  for (const model of t.models) {
    const isUp = model.dataset.y !== undefined, axis = isUp ? view.up : view.right, [first, last] = view.stretch(isUp), step = tick(last - first, axis.pieces);
    for (let i = Math.ceil(first / step - 1e-9); i * step <= last * (1 + 1e-12); i++) {
      const e = t.g.appendChild(model.cloneNode(true)), at = isUp ? view.Y(view.upward(i * step)) : view.X(view.along(i * step));
      if (e.tagName === 'text') e.textContent = words(i * step, step, axis.unit);
      for (const attribute of isUp ? ['y', 'y1', 'y2'] : ['x', 'x1', 'x2'])
        if (e.hasAttribute(attribute)) e.setAttribute(attribute, at + (isUp && attribute === 'y' ? 4.5 : 0));
    }
  }
}

/* The picture itself; gives what draws it as the view has it, with a ring around the chosen block. */
function makeScene(svg, view, name) {
  const {left, top, width, height} = view, group = svg.querySelector('.blocks'), free = svg.querySelector('.free'), freeTop = free && +free.getAttribute('y');
  const clip = drawn(svg, 'g', {'clip-path': `url(#${name})`});
  drawn(drawn(svg, 'clipPath', {id: name}), 'rect', {x: left, y: top - 1, width, height: height + 2});
  svg.insertBefore(clip, group);
  clip.append(...(free ? [free] : []), group);
  group.setAttribute('aria-hidden', 'true'); /* thousands of titles: the search and N and P read them out */
  const ring = drawn(clip, 'rect', {class: 'ring', visibility: 'hidden'}), moving = readMoving(svg, view), ticks = readTicks(svg);
  return chosen => {
    group.setAttribute('transform', `matrix(${width / (view.to - view.from)} 0 0 ${height / (view.below - view.above)} ${view.X(0)} ${view.Y(0)})`);
    if (free) {
      const y = Math.max(top, view.Y(freeTop));
      free.setAttribute('y', y);
      free.setAttribute('height', Math.max(0, top + height - y));
    }
    moving.forEach(m => move(m, view));
    ticks.forEach(t => drawTicks(t, view));
    ring.setAttribute('visibility', chosen ? 'visible' : 'hidden');
    if (chosen) {
      const x = view.X(chosen.x), y = view.Y(chosen.y), w = view.X(chosen.x + chosen.w) - x, h = view.Y(chosen.y + chosen.h) - y;
      for (const [attribute, value] of [['x', x - 1.5], ['y', y - 1.5], ['width', w + 3], ['height', h + 3]]) ring.setAttribute(attribute, value);
    }
    svg.classList.toggle('zoomed', !view.isWhole());
  };
}

/* Mouse and fingers. */
function followPointers(svg, view, blocks, choose) {
  const point = event => new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
  const held = new Map(); /* pointers that are down */
  let moved = 0;
  const span = () => {
    const [a, b] = [...held.values()];
    return {x: (a.x + b.x) / 2, y: (a.y + b.y) / 2, d: Math.hypot(a.x - b.x, a.y - b.y)};
  };
  svg.addEventListener('wheel', event => {
    if (!event.ctrlKey && !event.metaKey) return; /* the page scrolls */
    event.preventDefault();
    const f = Math.exp(-(event.deltaY || event.deltaX) * (event.deltaMode ? 0.05 : 0.002));
    view.zoom(f, event.shiftKey ? 1 : f, point(event));
  }, {passive: false});
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
      view.zoom(after.d / before.d, after.d / before.d, before);
      view.shift(after.x - before.x, after.y - before.y);
    } else if (held.size === 1 && moved > 6) {
      view.shift(is.x - was.x, is.y - was.y);
    }
  });
  for (const end of ['pointerup', 'pointercancel']) svg.addEventListener(end, event => held.delete(event.pointerId));
  svg.addEventListener('dblclick', event => view.zoom(2.5, 2.5, point(event)));
  svg.addEventListener('click', event => {
    if (moved > 6) return;
    const at = point(event);
    let best = null, least = (event.pointerType === 'touch' ? 22 : 4) / svg.getScreenCTM().a; /* pixels, in the picture's units */
    for (const b of blocks) { /* the nearest: some are thinner than a pixel */
      const x0 = view.X(b.x), x1 = view.X(b.x + b.w), y0 = view.Y(b.y), y1 = view.Y(b.y + b.h);
      const d = Math.hypot(Math.max(x0 - at.x, 0, at.x - x1), Math.max(y0 - at.y, 0, at.y - y1));
      if (d < least) best = b, least = d;
    }
    choose(best);
  });
}

/* What stands around a picture: tools and hits above it, the chosen block and what is shown below it. */
function makePanel(figure, svg, name) {
  const tools = document.createElement('div');
  tools.className = 'tools';
  figure.insertBefore(tools, svg);
  const search = make(tools, 'input', {type: 'search', placeholder: 'search by name', 'aria-label': `search the blocks of the ${svg.getAttribute('aria-label')}`, autocomplete: 'off', spellcheck: 'false'});
  const hits = make(figure, 'ol', {class: 'hits', hidden: ''});
  figure.insertBefore(hits, svg);
  const card = make(figure, 'div', {class: 'chosen', hidden: ''}), facts = make(card, 'div', {role: 'status'}), acts = make(card, 'div', {class: 'acts'});
  const where = make(figure, 'p', {class: 'where', 'aria-live': 'polite'});
  const keys = make(figure, 'p', {class: 'where', id: name + '-keys'},
    'Drag to move; zoom with Ctrl and the wheel (with Shift, along the schedule only) or two fingers; click a block to select it. ' +
    'Keyboard: arrows, + and \u2212, 0 for the whole picture, N and P for the next and previous block, Enter to zoom to it, / to search, Escape.');
  for (const [attribute, value] of [['tabindex', '0'], ['role', 'application'], ['aria-describedby', keys.id]]) svg.setAttribute(attribute, value);
  return {tools, search, hits, card, facts, acts, where};
}

function explore(figure) {
  const svg = figure.querySelector('svg'), name = 'frame-' + Math.random().toString(36).slice(2), blocks = readBlocks(figure);
  let chosen = null, found = [], waiting = false;
  const redraw = () => { if (!waiting) waiting = true, requestAnimationFrame(draw); };
  const view = new View(svg, redraw), scene = makeScene(svg, view, name), panel = makePanel(figure, svg, name);
  const said = (first, last, unit) => `${words(first, (last - first) / 100, unit)} to ${words(unit === 'node' ? Math.max(first, last - 1) : last, (last - first) / 100, unit)}`;
  function draw() {
    waiting = false;
    scene(chosen);
    reset.disabled = view.isWhole();
    panel.where.textContent = `Shown: ${view.right.unit === 'node' ? 'nodes ' : ''}${said(...view.stretch(false), view.right.unit)}`
      + (view.up ? `, ${said(...view.stretch(true), view.up.unit)}.` : '.');
  }

  function choose(b) {
    const [first, ...lines] = b ? b.text.split('\n') : [''];
    chosen = b;
    panel.card.hidden = !b;
    panel.facts.replaceChildren();
    make(panel.facts, 'b', {}, first);
    for (const line of lines) make(panel.facts, 'span', {}, line);
    redraw();
  }
  function step(by) {
    const among = found.length ? found : blocks, at = chosen ? among.indexOf(chosen) : -1;
    choose(among[at >= 0 ? (at + by + among.length) % among.length : by > 0 ? 0 : among.length - 1]);
    view.into(chosen);
  }
  function look() {
    const wanted = panel.search.value.toLowerCase().split(/\s+/).filter(w => w);
    found = wanted.length ? blocks.filter(b => wanted.every(w => b.low.includes(w))) : [];
    svg.classList.toggle('searched', wanted.length > 0);
    for (const rect of svg.querySelectorAll('.found')) rect.classList.remove('found');
    for (const b of found) b.rect.classList.add('found');
    number.textContent = wanted.length ? `${count(found.length)} of ${count(blocks.length)} blocks` : '';
    panel.hits.replaceChildren();
    panel.hits.hidden = !found.length;
    for (const b of [...found].sort((a, c) => c.w * c.h - a.w * a.h).slice(0, HITS))
      button(make(panel.hits, 'li', {}), b.text.split('\n')[0], () => { choose(b); view.around(b); });
    if (found.length > HITS) make(panel.hits, 'li', {}, `and ${count(found.length - HITS)} more: Enter goes through them`);
  }

  const near = () => view.zoom(1.6, 1.6), far = () => view.zoom(1 / 1.6, 1 / 1.6), focus = () => svg.focus({preventScroll: true});
  button(panel.tools, '+', near, 'zoom in');
  button(panel.tools, '\u2212', far, 'zoom out');
  const reset = button(panel.tools, 'whole picture', () => { view.all(); focus(); });
  const number = make(panel.tools, 'span', {role: 'status'});
  button(panel.acts, 'zoom to it', () => view.around(chosen));
  button(panel.acts, 'previous', () => step(-1), 'previous block');
  button(panel.acts, 'next', () => step(1), 'next block');
  button(panel.acts, 'deselect', () => { choose(null); focus(); });
  panel.search.addEventListener('input', look);
  panel.search.addEventListener('keydown', event => {
    if (event.key === 'Enter' && found.length) step(event.shiftKey ? -1 : 1);
    if (event.key === 'Escape') panel.search.value = '', look();
  });
  const across = view.width / 8, down = view.height / 8;
  const keys = {
    ArrowLeft: () => view.shift(across, 0), ArrowRight: () => view.shift(-across, 0), ArrowUp: () => view.shift(0, down), ArrowDown: () => view.shift(0, -down),
    '+': near, '=': near, '-': far, 0: () => view.all(), n: () => step(1), p: () => step(-1), '/': () => panel.search.focus(),
    Enter: () => chosen && view.around(chosen), Escape: () => chosen ? choose(null) : view.all(),
  };
  svg.addEventListener('keydown', event => {
    const act = keys[event.key] || keys[event.key.toLowerCase()];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act();
  });
  followPointers(svg, view, blocks, choose);
  draw();
}

document.querySelectorAll('.explore').forEach(explore);
})();
