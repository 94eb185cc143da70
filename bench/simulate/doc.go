// Package simulate puts load on a real tracker: a process of its own over a real records file, asked over real
// connections by agents that are real but for their work. They neither compile nor measure; they wait as long as that
// would take, fail as often, and vanish and come back. What the tracker acknowledged is remembered and compared with
// the records file after the tracker was killed.
package simulate
