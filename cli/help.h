/* The headings of the documentation, of which the build makes a table. */
#ifndef PL_CLI_HELP_H
#define PL_CLI_HELP_H

typedef struct pl_cli_heading {
    const char *page, *text; /* "docs/memory.md"; NULL behind the last */
} pl_cli_heading;
extern const pl_cli_heading pl_cli_headings[];

#endif
