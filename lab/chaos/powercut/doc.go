// Package powercut shows what a power cut could leave of a program's files.
//
// Run has strace write down every call by which a program, or a whole farm of them, changes files below a folder, with
// what it writes. Disk replays the calls up to an instant and knows what a disk must have kept by then, and what it
// may have lost: of each file what was written since it was last synced, each sector by itself, as well as what it
// grew or shrank by; of each folder the names that were made, changed or removed since the folder was synced. That is
// what POSIX lets a file system lose; all that are in use lose less. Losses are drawn at random, and a loss that
// breaks something is shrunk to what it takes (Pillai et al., All File Systems Are Not Created Equal, OSDI 2014, has
// the method).
package powercut
