// Command process is a process of a campaign's farm: its tracker, a pretending agent, or what starts all of them.
package main
