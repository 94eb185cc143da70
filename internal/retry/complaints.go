package retry

// Complaints counts repeated complaints about a persistent condition, such as an unreachable server.
type Complaints int

// rarest is the maximum interval, in complaints, between logged ones.
const rarest = 256

// Due reports whether to log another complaint: the first, and then at increasing intervals.
func (c *Complaints) Due() bool {
	*c++
	n := int(*c)
	return n&(n-1) == 0 && n <= rarest || n%rarest == 0
}
