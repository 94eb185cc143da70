// Package artifact keeps files by their sha256 and carries them between tracker and agents. The same store serves the
// tracker, which agents upload to, and each agent, as a cache of what it downloaded.
package artifact
