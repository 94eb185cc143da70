// Package upkeep looks after the records file while the tracker runs: backups by a policy, each verified, and a check
// of all rows once a day. It knows the store and no state. What it did is told to an observer.
package upkeep
