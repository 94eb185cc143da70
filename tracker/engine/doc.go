// Package engine runs the tracker's state machine: it has the lock, the store, the artifacts, the watchers and the
// beat of time. It knows no transport and no metrics; what happened is told to an observer.
//
// Every operation follows one path (see Update): under one lock the machine checks it, changes the memory and says
// what is to be stored; the engine hands that to the store, and answers when it is on disk. Changes reach the disk in
// the order in which they were made, so nothing that was answered can depend on something that is lost.
package engine
