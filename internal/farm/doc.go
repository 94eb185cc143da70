// Package farm puts the services together from their parts: the tracker over its data folder, agents with a connection
// to a tracker, or all of them in one process. It only wires. Begin with StartLocal.
package farm
