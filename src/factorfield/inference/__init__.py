"""Inference over latent variables e ~ N(0, I): everything uncertain is a linear function of them.

The forward map turns latents into fields. Every measurement sends a Gaussian message about the latents, read through
the tangent of the map; their product is the posterior.
"""
