// Command process runs a process of a campaign's farm: the tracker, a simulated agent, or a whole farm.
package main
