/* Start an interpreter, have it import what it should, and keep it as a file. */
#ifndef EXCISE_FREEZE_H
#define EXCISE_FREEZE_H

/* `excise-agent freeze`: see freeze.c. Returns an exit code. */
int freeze_main(int count, char **words);

#endif
