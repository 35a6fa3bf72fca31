/* The process that makes jails: small, single-threaded, one per driver, and gone with it. */
#ifndef EXCISE_SPAWNER_H
#define EXCISE_SPAWNER_H

/* `excise-agent spawner`: serve until the driver's end of the socket is closed or the driver dies; the exit status. */
int spawner_main(int count, char **words);

#endif
