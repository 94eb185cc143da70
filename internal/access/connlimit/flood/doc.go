// Package flood is a peer that begins messages and never ends one, or asks and never listens, for tests of what a
// server holds of them.
package flood
