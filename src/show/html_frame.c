/* The frame of every page (its head and its end), and the pieces that most pages are made of. */
#include "base/units.h"
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

void pl_html_page_end(pl_str *out) { pl_str_append(out, "</main></body></html>\n"); }

void pl_html_cards_begin(pl_str *out) { pl_str_append(out, "<div class='cards'>\n"); }

void pl_html_cards_end(pl_str *out) { pl_str_append(out, "</div>\n"); }

void pl_html_card(const char *number, const char *words, pl_str *out)
{
    pl_str_append(out, "<div class='card'><b>");
    pl_html_text(out, number);
    pl_str_append(out, "</b><span>");
    pl_html_text(out, words);
    pl_str_append(out, "</span></div>\n");
}

void pl_html_section(const char *title, const char *words, pl_str *out)
{
    pl_str_append(out, "<section><h2>");
    pl_html_text(out, title);
    pl_str_append(out, "</h2><p>");
    pl_html_text(out, words);
    pl_str_append(out, "</p>\n");
}

void pl_html_fact(const char *name, const char *value, pl_str *out)
{
    pl_str_append(out, "<tr><td>");
    pl_html_text(out, name);
    pl_str_append(out, "</td><td>");
    pl_html_text(out, value);
    pl_str_append(out, "</td></tr>\n");
}

void pl_html_cell(const char *label, const char *text, pl_str *out)
{
    pl_str_printf(out, "<td class='n' data-l='%s'>", label);
    pl_html_text(out, text);
    pl_str_append(out, "</td>");
}

void pl_html_cell_count(const char *label, uint64_t number, pl_str *out)
{
    char text[32];
    pl_html_cell(label, pl_format_count(number, text, sizeof text), out);
}
