package retry

// Complaints counts those about what stays as it is, such as a server that is away for days.
type Complaints int

// rarest is after how many others one is written down again.
const rarest = 256

// Due says whether another one is to be written down: the first, and then ever fewer.
func (c *Complaints) Due() bool {
	*c++
	n := int(*c)
	return n&(n-1) == 0 && n <= rarest || n%rarest == 0
}
