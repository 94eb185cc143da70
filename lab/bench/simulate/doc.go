// Package simulate puts load on a real tracker: a process of its own with a real records file and real connections; or
// on several side by side, with a real database. Only the agents' work is simulated: they wait as long as building and
// measuring would take, fail as often, vanish and come back. At the end what the trackers acknowledged is compared
// with what is stored. Begin with Run.
package simulate
