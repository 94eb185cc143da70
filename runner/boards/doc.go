// Package boards reaches boards without an operating system, whose monitor loads and runs candidates: it opens their
// serial lines, starts those that are emulated, and resets those that answer no longer. Begin with Find and Open.
package boards
