// Package update replaces an agent's program by a release that its tracker offers. It trusts a key alone: the digests
// of a release's files are signed, and so is the version. A new program runs on trial, as a child of the old one,
// which stays where it is until the new one has joined the farm. Begin with Updater.
package update
