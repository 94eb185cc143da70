// Package boards connects to bare-metal boards, whose monitor loads and runs candidates. It opens serial
// lines, starts emulators, and resets boards that stop answering. Start with Find and Open.
package boards
