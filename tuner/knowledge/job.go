package knowledge

// Job is what the searches of one job share. It is not safe for concurrent use.
type Job struct {
	history *History
}

// NewJob begins a job that knows a history; nil means nothing.
func NewJob(h *History) *Job { return &Job{history: h} }
