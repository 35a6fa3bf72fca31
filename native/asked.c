#include "asked.h"

#include <string.h>

/* What is read when an interpreter starts, and nobody has taught a thawed one to take over. */
static const char *const unusual[] = {
    "PYTHON",  "__PYVENV_LAUNCHER__", "LD_",        "GLIBC_TUNABLES", "MALLOC_",
    "LOCPATH", "NLSPATH",             "GCONV_PATH", "COVERAGE_",      "COV_CORE_",
};
static const char *const understood[] = {"PYTHONPATH", "PYTHONHASHSEED", "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED"};

enum reason asked_for(int count, char *const *words)
{
    if (count < 2) return SERVED;
    const char *first = words[1];
    if (first[0] != '-') return first[0] ? SERVED : FLAGS;
    if (first[1] == 0) return SERVED;
    if ((first[1] == 'm' || first[1] == 'c') && first[2] == 0) return count > 2 && words[2][0] ? SERVED : FLAGS;
    return FLAGS;
}

const char *asked_value(const char *variable, const char *name)
{
    size_t length = strlen(name);
    return strncmp(variable, name, length) == 0 && variable[length] == '=' ? variable + length + 1 : NULL;
}

static const char *value_of(char *const *environment, const char *name, size_t length)
{
    for (; *environment; environment++)
        if (strncmp(*environment, name, length) == 0 && (*environment)[length] == '=') return *environment + length + 1;
    return NULL;
}

static const char *value(char *const *environment, const char *name) { return value_of(environment, name, strlen(name)); }

const char *asked_seed(char *const *environment)
{
    const char *seed = value(environment, "PYTHONHASHSEED");
    return seed == NULL || strcmp(seed, "random") == 0 ? "" : seed;
}

/* What the C library would take for the character set's locale. */
static const char *locale(char *const *environment)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (int i = 0; i < 3; i++) {
        const char *named = value(environment, names[i]);
        if (named && *named) return named;
    }
    return "";
}

/* C: that is the locale. E: the variable has just this value. A: it is absent. */
static bool holds(const char *term, char *const *environment)
{
    if (term[0] == 'C') return strcmp(term + 1, locale(environment)) == 0;
    if (term[0] == 'A') return value(environment, term + 1) == NULL;
    if (term[0] != 'E') return true;
    const char *equals = strchr(term, '=');
    if (equals == NULL) return false;
    const char *now = value_of(environment, term + 1, (size_t)(equals - term - 1));
    return now && strcmp(now, equals + 1) == 0;
}

static bool is_unusual(const char *variable)
{
    for (size_t i = 0; i < sizeof understood / sizeof *understood; i++)
        if (asked_value(variable, understood[i])) return false;
    for (size_t i = 0; i < sizeof unusual / sizeof *unusual; i++)
        if (strncmp(variable, unusual[i], strlen(unusual[i])) == 0) return true;
    return false;
}

enum reason asked_among(char *const *environment, const char *terms, size_t size)
{
    for (char *const *each = environment; *each; each++)
        if (is_unusual(*each)) return VARIABLES;
    for (const char *term = terms; term < terms + size && *term; term += strlen(term) + 1)
        if (!holds(term, environment)) return *term == 'C' ? LOCALE : VARIABLES;
    return SERVED;
}

static bool has(const char *terms, size_t size, char letter, const char *what, size_t length)
{
    for (const char *term = terms; term < terms + size && *term; term += strlen(term) + 1)
        if (term[0] == letter && strlen(term + 1) == length && memcmp(term + 1, what, length) == 0) return true;
    return false;
}

bool asked_here(const char *folder, size_t folder_length, const char *name, const char *terms, size_t size)
{
    return has(terms, size, 'D', folder, folder_length) && has(terms, size, 'N', name, strlen(name));
}
