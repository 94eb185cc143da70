// Command process is a process of a campaign's farm: its tracker, a simulated agent, or the one that starts them all.
package main
