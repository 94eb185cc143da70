// Package farm puts the services together from their parts: the tracker over its data folder, agents over a connection
// to a tracker, and all of them in one process.
package farm
