/* The frame of every page: its head and its end. */
#include "show/html.h"

void pl_html_page_begin(const pl_html_page *p, pl_str *out)
{
    pl_str_append(out, "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'><meta name='viewport' "
                       "content='width=device-width'><title>");
    pl_html_text(out, p->title);
    pl_str_printf(out, " – %s</title>\n<style>\n", p->what);
    pl_str_append(out, pl_html_style);
    pl_str_printf(out, "</style></head>\n<body><main>\n<h1>%s", p->before ? p->before : "");
    pl_html_text(out, p->title);
    pl_str_append(out, "</h1>\n");
}

void pl_html_page_end(bool explored, pl_str *out)
{
    pl_str_append(out, "</main>");
    if (explored) {
        pl_str_append(out, "<script>\n");
        pl_str_append(out, pl_html_explore);
        pl_str_append(out, "</script>\n");
    }
    pl_str_append(out, "</body></html>\n");
}
