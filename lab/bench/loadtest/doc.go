// Package loadtest load-tests a real tracker in a separate process with a real records file and real connections, or
// several trackers with a real database. Only the agents' work is simulated: they wait for realistic times, fail,
// vanish and return. At the end, the data that the trackers acknowledged are compared with the store. Start with Run.
package loadtest
