// Package simulate puts load on a real tracker: a process of its own with a real records file and real connections.
// Only the agents' work is simulated: they wait as long as building and measuring would take, fail as often, vanish
// and come back. At the end what the tracker acknowledged is compared with the records file. Begin with Run.
package simulate
