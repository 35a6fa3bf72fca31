/* Nothing but the agent runs: what a reset and a snapshot begin with, and the list that proves it. */
#ifndef EXCISE_QUIET_H
#define EXCISE_QUIET_H

#include <stdint.h>

#include "agent.h"
#include "wire.h"

void quiet_ask(uint32_t id, struct reader body, enum agent_role role);
uint64_t quiet_next_ns(void);
void quiet_tick(void);
void quiet_forget(void); /* nobody waits for the answer any more */

void processes_list(uint32_t id);

#endif
