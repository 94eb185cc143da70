// Package upkeep maintains the records file while the tracker runs: scheduled backups, each verified, and a daily
// check of all rows. It knows the store but not the state machine. An observer receives statistics.
package upkeep
