// Package coordinator serializes and persists the operations of the tracker's state machine. It owns the lock, the
// store, the artifacts, the watchers and the periodic tick. It is independent of transport and metrics; an observer
// receives events.
//
// Every operation follows one path (see Update). Under one lock the machine checks it, changes memory and returns the
// rows to store. The coordinator commits them and answers once they are on disk. Changes reach the disk in the order
// in which they were made, so no answer can depend on lost state.
package coordinator
