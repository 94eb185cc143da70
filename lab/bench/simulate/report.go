package simulate

// Report is the result of a simulation. Its JSON is a contract of the command line.
type Report struct {
	Devices int `json:"devices"`
	// ResultsPerSecond are the trials whose record was acknowledged.
	ResultsPerSecond float64 `json:"results_per_s"`
	// Latencies are as the agents saw them; see meter.
	LeaseP50  float64 `json:"lease_p50_s"`
	LeaseP99  float64 `json:"lease_p99_s"`
	ResultP99 float64 `json:"result_p99_s"`
	// RSSBytes is the most that the tracker's process had resident, pages of the mapped records file included; of
	// several trackers, that of the largest.
	RSSBytes int64 `json:"rss_bytes"`
	// TrackerCPU is the processor time of all trackers for each result.
	TrackerCPUSeconds float64 `json:"tracker_cpu_s_per_result"`
	// FsyncsPerSecond are two for each transaction of a file: one for its pages and one for the page that makes them
	// valid. A database has its own.
	FsyncsPerSecond float64 `json:"fsyncs_per_s,omitempty"`
	// Database holds the database's totals; nil for a file.
	Database *DatabaseReport `json:"database,omitempty"`
	// Trackers are those that serve a database.
	Trackers []TrackerReport `json:"trackers,omitempty"`
	// Lost and Duplicated compare the acknowledged data with the store after the trackers were killed; see
	// verdict.
	Lost       int `json:"lost"`
	Duplicated int `json:"duplicated"`
}

// DatabaseReport holds a database's work per result.
type DatabaseReport struct {
	// Transactions are all of the database, those that read included.
	Transactions float64 `json:"transactions_per_result"`
	// CPU is the processor time of all processes of the server; 0 = not known.
	CPUSeconds float64 `json:"cpu_s_per_result,omitempty"`
}

// TrackerReport is one of several trackers.
type TrackerReport struct {
	// ResultsPerSecond are those that it acknowledged.
	ResultsPerSecond float64 `json:"results_per_s"`
	RSSBytes         int64   `json:"rss_bytes"`
}

// Details holds further observations.
type Details struct {
	Report
	Jobs        int `json:"jobs"`
	Agents      int `json:"agents"`
	Connections int `json:"connections"` // to each tracker
	Shards      int `json:"shards"`
	// RecordsBefore is how many the store was filled with by this run.
	RecordsBefore int `json:"records_before"`
	// ResultsPerSecond is Results divided by Seconds.
	Results int     `json:"results"`
	Seconds float64 `json:"took_s"`
	// ResultsPerReport is how many came together in the mean.
	ResultsPerReport float64 `json:"results_per_report"`
	// Leases is how many latencies of leases were measured.
	Leases int `json:"leases"`
	// CallsPerSecond are all answered calls but streams. What an agent asks all shards is one.
	CallsPerSecond float64 `json:"calls_per_s"`
	// Lives are the sessions' agents began, and Kills how often a tracker was killed before the end.
	Lives int64 `json:"lives"`
	Kills int   `json:"kills"`
	// TrackerLoad is how many processors all trackers kept busy.
	TrackerLoad float64 `json:"tracker_load"`
	// AgentsCPU is the processor time of all that is simulated for each result; it is taken on the same machine.
	AgentsCPUSeconds float64 `json:"agents_cpu_s_per_result"`
	// RSSAnonymousBytes is the tracker's memory that is not a mapped file's, at the end; of several, the largest's.
	RSSAnonymousBytes int64 `json:"rss_anonymous_bytes"`
	// RestartSeconds is from the start of processes over the data to the first answer of all shards, after the kill at
	// the end.
	RestartSeconds float64 `json:"restart_s"`
	// FileBytes is the size of the records file, or of the database.
	FileBytes int64 `json:"file_bytes"`
}
