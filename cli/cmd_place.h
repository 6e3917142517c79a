#ifndef PL_CLI_CMD_PLACE_H
#define PL_CLI_CMD_PLACE_H

/* plimsoll place …; argv[0] is the word "place". Returns the exit code. */
int pl_cmd_place(int argc, char **argv);

#endif
