package simulate

// Report is what a simulation found. Its JSON is a contract of the command line.
type Report struct {
	Devices int `json:"devices"`
	// ResultsPerSecond are the trials whose record was acknowledged.
	ResultsPerSecond float64 `json:"results_per_s"`
	// Latencies are as the agents saw them; see meter.
	LeaseP50  float64 `json:"lease_p50_ms"`
	LeaseP99  float64 `json:"lease_p99_ms"`
	ResultP99 float64 `json:"result_p99_ms"`
	// RSSBytes is the most that the tracker's process had resident, pages of the mapped records file included.
	RSSBytes int64 `json:"rss_bytes"`
	// FsyncsPerSecond are two for each transaction of the store: one for its pages and one for the page that makes
	// them valid.
	FsyncsPerSecond float64 `json:"fsyncs_per_s"`
	// Lost and Duplicated compare what was acknowledged with the store after the tracker was killed; see verdict.
	Lost       int `json:"lost"`
	Duplicated int `json:"duplicated"`
}

// Details are what else was seen.
type Details struct {
	Report
	Jobs        int `json:"jobs"`
	Agents      int `json:"agents"`
	Connections int `json:"connections"`
	// RecordsBefore is how many the file was filled with by this run.
	RecordsBefore int `json:"records_before"`
	// Results and Seconds are what ResultsPerSecond is the ratio of.
	Results int     `json:"results"`
	Seconds float64 `json:"seconds"`
	// ResultsPerReport is how many came together in the mean.
	ResultsPerReport float64 `json:"results_per_report"`
	// Leases is how many latencies of leases were measured.
	Leases int `json:"leases"`
	// CallsPerSecond are all answered calls but streams.
	CallsPerSecond float64 `json:"calls_per_s"`
	// Lives are the sessions' agents began, and Kills how often the tracker was killed before the end.
	Lives int64 `json:"lives"`
	Kills int   `json:"kills"`
	// TrackerCPU is the tracker's processor time for each result, and TrackerLoad how many processors it kept busy.
	TrackerCPUMicroseconds float64 `json:"tracker_cpu_us_per_result"`
	TrackerLoad            float64 `json:"tracker_load"`
	// AgentsCPU is the processor time of all that is simulated for each result; it is taken on the same machine.
	AgentsCPUMicroseconds float64 `json:"agents_cpu_us_per_result"`
	// RSSAnonymousBytes is the tracker's memory that is not a mapped file's, at the end.
	RSSAnonymousBytes int64 `json:"rss_anonymous_bytes"`
	// RestartSeconds is from the start of a process over the data to its first answer, after the kill at the end.
	RestartSeconds float64 `json:"restart_s"`
	// FileBytes is the size of the records file.
	FileBytes int64 `json:"file_bytes"`
}
