"""Training of the learned recoverer: recordings laid on graphs, the network, the losses, the weights."""
