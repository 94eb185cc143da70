package jobclient

import (
	"github.com/tilth-dev/tilth/compiler/program"
	"github.com/tilth-dev/tilth/tuner/progress"
)

// Task is a task of one or several models, with a unique name.
type Task struct {
	// Index is the task's index among those of the models.
	Index int
	Name  string
	// Weight is the sum over the models of the number of executions times the model's weight.
	Weight float64
	program.Task
}

// Model is the tasks of a model and the model's weight.
type Model struct {
	Tasks  []program.Task
	Weight float64
}

// Join lists the tasks of several models in order. It merges tasks with equal workloads and adds their weights.
func Join(models ...Model) []Task {
	taken, at := map[string]int{}, map[string]int{}
	var tasks []Task
	for _, m := range models {
		for _, t := range m.Tasks {
			digest := t.Workload.Digest()
			weight := m.Weight * t.Runs()
			if i, known := at[digest]; known {
				tasks[i].Weight += weight
				tasks[i].Count += t.Count
				continue
			}
			at[digest] = len(tasks)
			tasks = append(tasks, Task{Index: len(tasks), Name: progress.UniqueName(taken, t.Name), Weight: weight, Task: t})
		}
	}
	return tasks
}
