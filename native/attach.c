#define _GNU_SOURCE
#include "attach.h"

#include <mntent.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sys.h"

static const char FOLDER[] = "/run/excise";
static const char NOTE[] = "/run/excise/attach"; /* not empty: the option is on, and we put it on */
static const char OPTION[] = "favordynmods";

static int note = -1;

/* What else the hierarchy was mounted with has to be said again, or it is lost. */
static bool configure(const struct mntent *unified, bool fast)
{
    static const char *const others[] = {"nsdelegate", "memory_localevents", "memory_recursiveprot",
                                         "memory_hugetlb_accounting", "pids_localevents"};
    int fs = sys_fspick(unified->mnt_dir);
    if (fs < 0) return false;
    bool done = true;
    for (unsigned i = 0; i < sizeof others / sizeof *others; i++)
        if (hasmntopt(unified, others[i])) done = done && sys_fsconfig(fs, FSCONFIG_SET_FLAG, others[i], NULL, 0) == 0;
    if (fast) done = done && sys_fsconfig(fs, FSCONFIG_SET_FLAG, OPTION, NULL, 0) == 0;
    done = done && sys_fsconfig(fs, FSCONFIG_CMD_RECONFIGURE, NULL, NULL, 0) == 0;
    close(fs);
    return done;
}

/* Bring it about; `ours` is what the note says, and will say. */
static bool bring(bool fast, bool *ours)
{
    bool done = false;
    struct mntent *each;
    FILE *mounts = setmntent("/proc/self/mounts", "re");
    if (mounts == NULL) return false;
    while (!done && (each = getmntent(mounts))) {
        if (strcmp(each->mnt_type, "cgroup2") != 0) continue;
        if ((hasmntopt(each, OPTION) != NULL) == fast) done = true; /* without us, perhaps */
        else if ((done = configure(each, fast))) *ours = fast;
    }
    endmntent(mounts);
    return done;
}

static bool said(void)
{
    struct stat about;
    return fstat(note, &about) == 0 && about.st_size > 0;
}

static bool say(bool ours)
{
    return ours ? pwrite(note, "1", 1, 0) == 1 : ftruncate(note, 0) == 0;
}

/* The last to leave removes the file: what we then hold is nobody's. */
static bool join(void)
{
    struct stat about;
    while ((note = open(NOTE, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600)) >= 0) {
        if (flock(note, LOCK_SH) == 0 && fstat(note, &about) == 0 && about.st_nlink > 0) return true;
        close(note);
    }
    return false;
}

bool attach_hasten(void)
{
    mkdir(FOLDER, 0755);
    if (!join()) return false;
    bool ours = said();
    return bring(true, &ours) && say(ours);
}

void attach_settle(void)
{
    bool ours = false;
    if (note < 0 && (note = open(NOTE, O_RDWR | O_NOFOLLOW | O_CLOEXEC)) < 0) return;
    if (flock(note, LOCK_EX | LOCK_NB) == 0 && (!said() || bring(false, &ours))) unlink(NOTE);
    close(note);
    note = -1;
}
