// Package exchange brings records from where they are to where they are lacking. Begin with Sync.
//
// No side keeps a note of what it sent or got: what a side has is what decides. Groups of records whose digests of
// keys agree are passed over; of the others one side tells its keys, and the other which of them it lacks. So an
// exchange that was interrupted goes on where it was by beginning again, and records of any age are found, imported
// ones too. Records arrive in batches, each of which is stored as a whole or not at all.
package exchange
