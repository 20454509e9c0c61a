"""`python -m gemmaserve_operator`."""

from gemmaserve_operator.runtime.main import main

main()
