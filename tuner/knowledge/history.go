package knowledge

import "github.com/tilth-dev/tilth/compiler/target"

// History is what was measured before a job began. It is safe for concurrent use.
type History struct {
	target *target.Target
	tasks  []*Task
}

// NewHistory is the knowledge of tasks for searches on t. Tasks of other targets are a prior that counts less. The order of the
// tasks has a meaning: the same order gives the same searches.
func NewHistory(t *target.Target, tasks []*Task) *History {
	return &History{target: t, tasks: tasks}
}
