#include "show/chart.h"
#include "show/html.h"

void pl_chart_pictures_begin(pl_str *out) { pl_str_append(out, "<div class='pictures'>\n"); }
void pl_chart_pictures_end(pl_str *out) { pl_str_append(out, "</div>\n"); }

void pl_chart_draw_picture(const pl_chart_picture *p, pl_str *out)
{
    pl_base64 e = {.out = out};
    pl_str_append(out, "<figure><img alt='");
    pl_html_text(out, p->name);
    pl_str_append(out, "' src='data:image/png;base64,");
    for (size_t i = 0; i < p->png_bytes; i++) pl_base64_put(&e, ((const unsigned char *)p->png)[i]);
    pl_base64_end(&e);
    pl_str_append(out, "'><figcaption><b>");
    pl_html_text(out, p->title);
    pl_str_append(out, "</b> <span class='said'>");
    pl_html_text(out, p->text);
    pl_str_append(out, p->remark[0] ? "</span><br>" : "</span>");
    pl_html_text(out, p->remark);
    pl_str_append(out, "</figcaption></figure>\n");
}
