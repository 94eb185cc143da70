package graph

// Pass changes a graph to another that computes the same.
type Pass struct {
	// Name is what the pass is called where the graph is shown behind it.
	Name string
	Run  func(*Graph) error
}
