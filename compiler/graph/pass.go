package graph

// Pass transforms a graph into an equivalent one.
type Pass struct {
	// Name identifies the pass in dumps.
	Name string
	Run  func(*Graph) error
}
