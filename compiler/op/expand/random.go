package expand

import "github.com/tilth-dev/tilth/compiler/op"

// randomDefs are operators that draw random numbers. They are refused: no two runs give the same.
var randomDefs = []op.Def{
	random("Bernoulli"), random("Multinomial"), random("RandomNormal"), random("RandomNormalLike"), random("RandomUniform"),
	random("RandomUniformLike"),
}

func random(name string) op.Def {
	return def(name, 0, -1, func(e *expansion) []*op.Item {
		e.fail("random numbers are not supported: export the model for inference, or with the numbers as an input")
		return nil
	})
}
