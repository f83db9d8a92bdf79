"""The posteriors that private runs draw from: records independent given the parameters, and a prior."""
