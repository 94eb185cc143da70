package graph

// randomExpanders refuse operators that draw random numbers: no two runs give the same.
func randomExpanders() map[string]expander {
	table := map[string]expander{}
	for _, name := range []string{
		"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike",
	} {
		table[name] = expander{0, -1, func(e *expansion) []*item {
			e.fail("random numbers are not supported: export the model for inference, or with the numbers as an input")
			return nil
		}}
	}
	return table
}
