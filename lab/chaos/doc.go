// Package chaos proves the farm's promises under faults. A campaign is rounds: each starts a real tracker, tuners,
// builders and runners, each in a process of its own, has faults drawn by a seed befall them, lets all heal and the
// jobs end, and then holds the records file against what the tracker acknowledged.
//
// The agents are real but for their work: they neither compile nor measure (see pretender). What an agent asked, and
// what it was answered, it writes into its journal before and after each call, so that killing it loses nothing of
// what it knew. Agents reach the tracker through proxies (see proxy) that delay, swallow and cut what passes them. The
// tracker is built with failpoints (see Build), which the ordinary build does not have.
package chaos
