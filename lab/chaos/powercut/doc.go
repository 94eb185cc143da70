// Package powercut computes the possible states of a program's files after a power failure.
//
// Run records with strace every call of a program, or a whole farm, that changes files below a folder, including the
// written data. Disk replays the calls up to an instant. It knows what must be durable by then and what may be lost:
// the writes to a file since its last sync, sector by sector, and the changes of its size; and the names created,
// changed or removed since a folder's last sync. POSIX permits all of these losses, and real file systems lose less.
// Losses are drawn at random, and failing ones are shrunk to a minimum. The method is that of Pillai et al., All File
// Systems Are Not Created Equal, OSDI 2014.
package powercut
