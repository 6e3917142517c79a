/* The head of a page about results, with the style of what other pages lack. */
#include "report/html_rollout.h"

static const char style[] =
    "h3{font-size:15px;margin:20px 0 2px}h3:first-of-type{margin-top:10px}figure{margin:0;min-width:0}"
    "figcaption{font-size:12px;color:var(--soft);line-height:1.35;overflow-wrap:anywhere}"
    ".field{display:grid;grid-template-columns:150px repeat(6,minmax(0,1fr));gap:10px;align-items:start;margin:6px 0}"
    ".field.alone{display:inline-grid;grid-template-columns:minmax(0,150px);width:150px;margin-right:16px}"
    ".field img{display:block;width:100%;max-width:200px;aspect-ratio:1;image-rendering:pixelated;"
    "background:var(--grid);border-radius:3px}"
    ".scale{align-self:center}.scale i{display:block;height:12px;border-radius:2px;margin:3px 0}.scale "
    "span{display:flex;justify-content:space-between;"
    "gap:8px;font-size:12px;color:var(--soft);font-variant-numeric:tabular-nums}.scale b{font-weight:500}"
    ".none{background:#e6007a}.todo{background:var(--line)}\n"
    "svg .curve{fill:none;stroke-width:2;vector-effect:non-scaling-stroke}svg .band{opacity:.2;stroke:none}"
    "svg .curve.weight{stroke:var(--weight)}svg .curve.gradient{stroke:var(--gradient)}"
    "svg .curve.saved{stroke:var(--saved)}svg .curve.weight,svg .curve.gradient,svg .curve.saved{fill:none}"
    ".bands{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(420px,100%),1fr));gap:22px 30px;"
    "align-items:start}.bands>div{min-width:0}.bands h3{margin-top:6px}.bands details{overflow-x:auto}"
    ".bands table{font-size:13px}.bands th,.bands td{padding-right:8px}\n"
    ".drawn{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(224px,100%),1fr));gap:18px;margin:8px 0}"
    ".drawn img{display:block;width:100%;max-width:448px;image-rendering:pixelated;border:1px solid var(--line);"
    "border-radius:3px;margin:0 0 6px}.said{color:var(--ink);white-space:pre-wrap}.unknown{font-style:italic}"
    ".near{margin:10px 0 16px}.near p{margin:0 0 2px}.near table{width:100%}.near td.n{width:1%;padding-right:14px;"
    "vertical-align:top;font-size:13px;color:var(--soft)}\n"
    "details{margin:8px 0 0}summary{cursor:pointer;color:var(--soft);font-size:13px}\n"
    ".pairs{display:grid;grid-template-columns:repeat(auto-fill,minmax(165px,1fr));gap:16px 14px;margin:8px 0 14px}"
    ".pairs svg{margin:0 0 4px;aspect-ratio:1}.pairs svg .frame{fill:none;stroke:var(--line)}"
    ".pairs svg .points{fill:none;stroke-width:4;stroke-linecap:round}.pairs .points.weight{stroke:var(--weight)}"
    ".pairs .points.gradient{stroke:var(--gradient)}.pairs .points.saved{stroke:var(--saved)}"
    ".pairs .points.free{stroke:var(--line)}.pairs rect.share{fill:var(--staging)}"
    ".pairs .even{stroke:var(--ink);stroke-dasharray:5 4;stroke-width:1.5;fill:none}"
    "td.bar i.staging{background:var(--staging)}table.facts td:first-child{color:var(--soft);width:34%}"
    "table.facts td{white-space:normal}\n"
    "@media(max-width:700px){.bands svg{font-size:18px;margin:8px 0 "
    "4px}.field{grid-template-columns:repeat(3,minmax(0,1fr));gap:8px}.field "
    ".scale{grid-column:1/-1}"
    ".pairs{grid-template-columns:1fr 1fr}table.facts td:first-child{flex:0 0 38%}table.facts td{flex:1 1 50%}"
    ".pairs svg{margin:0 0 4px}.drawn{grid-template-columns:repeat(2,minmax(0,1fr));gap:12px}.near tr{flex-wrap:nowrap;"
    "justify-content:flex-start;align-items:flex-start}.near td.n{flex:0 0 auto;width:auto}.near td.w{flex:1 1 0}}\n";

static void add_style(pl_str *out)
{
    pl_str_append(out, style);
    pl_html_field_style(out);
}

void pl_html_results_begin(const char *title, const char *words, pl_str *out)
{
    pl_html_page_begin(&(pl_html_page){.title = title, .what = "results", .style = add_style}, out);
    pl_str_append(out, "<p>");
    pl_html_text(out, words);
    pl_str_append(out, "</p>\n");
}

const char *pl_html_policy_class(pl_update_policy policy)
{
    static const char *const classes[] = {
        [PL_POLICY_AUTOREGRESSIVE] = "saved", [PL_POLICY_RESIDUAL] = "weight", [PL_POLICY_CONVEX] = "gradient"};
    return classes[policy];
}

const char *pl_html_policy_name(pl_update_policy policy)
{
#define POLICY_WORD(c, word) word,
    static const char *const names[] = {PL_UPDATE_POLICIES(POLICY_WORD)};
    return names[policy];
}
