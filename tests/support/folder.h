/* A folder of a test's own, which is the current one while the test is in it. */
#ifndef PL_TEST_FOLDER_H
#define PL_TEST_FOLDER_H

/* path: a template of mkdtemp, which becomes the path. 0, or -1. */
int enter_folder(char *path);
/* Removes it, with what is in it, and goes to the root. 0, or another number. */
int leave_folder(const char *path);
/* The text so many times, as a file. */
void write_file(const char *path, const char *text, int times);

#endif
