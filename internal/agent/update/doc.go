// Package update replaces an agent's program by a release that its tracker offers. It trusts only a public
// key, which signs the version and the digests of a release's files. The new program first runs on trial as a
// child process; the old one stays in place until the new one has joined the farm. Start with Updater.
package update
