// Package chaos tests the farm's guarantees under faults. A campaign consists of rounds. Each round starts a real
// tracker, tuners, builders and runners as separate processes and injects random faults from a seed. It then waits
// for recovery and for the end of the jobs, and compares the store with what the tracker acknowledged.
//
// Agents are real except for their work: they neither compile nor measure (see simulatedAgent). An agent writes each
// request and response to its journal before and after the call, so killing it loses no evidence. Agents connect to
// the tracker through proxies (see proxy) that delay, drop and cut traffic. The processes are this test program, built
// with failpoints (see buildWithFailpoints).
package chaos
