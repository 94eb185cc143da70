// Package retention says which jobs that have ended are still kept. An Archive knows them by what they take and when
// they ended, and names the one that is to go first by the rules of Keep. It stores nothing.
package retention
