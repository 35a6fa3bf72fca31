/* What an interpreter was asked for, and whether a thawed one may do it. Purely: nothing is looked up here. */
#ifndef EXCISE_ASKED_H
#define EXCISE_ASKED_H

#include <stdbool.h>
#include <stddef.h>

/* Why an invocation is served by the real interpreter. One byte each in the file of counts; excise/warm/counts.py knows
 * them too. */
enum reason {
    SERVED = 's',
    FLAGS = 'f',        /* options of the interpreter */
    NOTHING_ASKED = 'n', /* neither a module, nor code, nor a script: a prompt, if stdin is a terminal */
    VARIABLES = 'v',    /* most of PYTHON*, LD_* and others that an interpreter reads when it starts */
    LOCALE = 'l',       /* the locale of characters is another */
    ELSEWHERE = 'e',    /* another environment than the one that is kept warm */
    CHANGED = 'c',      /* files that the interpreter had read have changed */
    SIGNALS = 'i',      /* signals are ignored that usually are not */
    DESCRIPTORS = 'd',  /* 0, 1 or 2 is closed */
    PRIVILEGED = 'p',   /* set-user-id and the like */
    UNREADABLE = 'u',   /* the frozen file is not there, or not whole */
    KERNEL = 'k',       /* it was frozen on another kernel */
    ADDRESSES = 'a',    /* its addresses are taken */
    MEMORY = 'm',       /* there is no room for it */
    FAILED = 'x',       /* thawed, it could not go on */
};

/* SERVED or FLAGS. */
enum reason asked_for(int count, char *const *words);

/* Does `name` with `=` behind it begin `variable`? Returns what follows, or NULL. */
const char *asked_value(const char *variable, const char *name);

/* The hash seed that is wanted: a number's text, or "" for one by chance. */
const char *asked_seed(char *const *environment);

/* SERVED, or what of the environment speaks against it. `terms` are zero-ended words, an empty one being the last. */
enum reason asked_among(char *const *environment, const char *terms, size_t size);

/* Is it one of the interpreters that `terms` names? `folder` is where the program was found, `name` what it is called there. */
bool asked_here(const char *folder, size_t folder_length, const char *name, const char *terms, size_t size);

#endif
